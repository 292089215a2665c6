"""*ReLU Regression with Massart Noise* in its own words: every algorithm and lemma by its name, and nothing else."""
