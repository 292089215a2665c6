# One regression by R: Rscript peers.R METHOD IN OUT ROWS COLUMNS SEED
#
# IN holds doubles: X by columns, then y. OUT gets the coefficients, NaN where the method failed, and then the processor's
# seconds of the fit alone. No intercept. Settings are those which the help page of a method names for hard data.

arguments <- commandArgs(trailingOnly = TRUE)
n <- as.integer(arguments[4]); d <- as.integer(arguments[5])
set.seed(as.integer(arguments[6]))

methods <- list(
  # MM: S start from 500 subsets, biweight with 95 % efficiency; more iterations than by default.
  lmrob = function(X, y) robustbase::lmrob(y ~ X + 0, max.it = 500, k.max = 2000)$coefficients,
  # Koller and Stahel's (2014) settings, which ?lmrob.control recommends.
  KS2014 = function(X, y) robustbase::lmrob(y ~ X + 0, setting = "KS2014")$coefficients,
  # FAST-LTS with half of the rows; 2000 starts instead of 500. Its raw answer is what fits exactly.
  ltsReg = function(X, y) {
    robustbase::ltsReg(X, y, intercept = FALSE, nsamp = 2000, mcd = FALSE)$raw.coefficients
  },
  # The same, reweighted: what ?ltsReg takes as the answer where right labels are noisy.
  ltsReg_reweighted = function(X, y) {
    robustbase::ltsReg(X, y, intercept = FALSE, nsamp = 2000, mcd = FALSE)$coefficients
  },
  # ?rlm: "MM" has an S-estimate's breakdown point and an M-estimate's efficiency.
  rlm = function(X, y) MASS::rlm(X, y, method = "MM", maxit = 100)$coefficients,
  # ?lqs prefers "lts" among its criteria; far more samples than the min(5p, 3000) of its default.
  lqs = function(X, y) MASS::lqs(X, y, intercept = FALSE, method = "lts", nsamp = 10000)$coefficients,
  # ?rq: simplex for up to several thousand rows, interior points ("fn") beyond.
  rq = function(X, y) quantreg::rq.fit(X, y, tau = 0.5, method = if (length(y) > 5000) "fn" else "br")$coefficients,
  # Powell's estimator from its default start. Curv refuses negative labels, which no ReLU has: those rows are dropped.
  crq = function(X, y) {
    suppressPackageStartupMessages(library(quantreg)) # crq looks Curv up by name
    X <- X[y >= 0, , drop = FALSE]; y <- y[y >= 0]
    crq(Curv(y, rep(0, length(y)), ctype = "left") ~ X - 1, taus = 0.5, method = "Powell")$coefficients
  }
)

source <- file(arguments[2], "rb")
X <- matrix(readBin(source, "double", n * d), n, d)
y <- readBin(source, "double", n)
close(source)

package <- c(rlm = "MASS", lqs = "MASS", rq = "quantreg", crq = "quantreg")[arguments[1]]
requireNamespace(if (is.na(package)) "robustbase" else package, quietly = TRUE)
coefficients <- rep(NaN, d)
start <- proc.time()
try(suppressWarnings(coefficients <- methods[[arguments[1]]](X, y)), silent = TRUE)
seconds <- sum((proc.time() - start)[1:2])
if (length(coefficients) != d || !all(is.finite(coefficients))) coefficients <- rep(NaN, d)
target <- file(arguments[3], "wb")
writeBin(as.double(c(coefficients, seconds)), target)
close(target)
