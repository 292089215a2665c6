"""Rules: short sums of terms. Terms and libraries of them, the search for the shortest rule, and formulas in words."""
