# One regression by R: Rscript peers.R METHOD IN OUT ROWS COLUMNS SEED
#
# IN holds doubles: X by columns, then y. OUT gets the coefficients, NaN where the method failed. No intercept.

arguments <- commandArgs(trailingOnly = TRUE)
n <- as.integer(arguments[4]); d <- as.integer(arguments[5])
set.seed(as.integer(arguments[6]))

methods <- list(
  # MM: S start from 500 subsets, biweight with 95 % efficiency; more iterations than by default.
  lmrob = function(X, y) robustbase::lmrob(y ~ X + 0, max.it = 500, k.max = 2000)$coefficients,
  # FAST-LTS with half of the rows; 2000 starts instead of 500. Its raw answer is what fits exactly.
  ltsReg = function(X, y) {
    robustbase::ltsReg(X, y, intercept = FALSE, nsamp = 2000, mcd = FALSE)$raw.coefficients
  },
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

coefficients <- rep(NaN, d)
try(suppressWarnings(coefficients <- methods[[arguments[1]]](X, y)), silent = TRUE)
if (length(coefficients) != d || !all(is.finite(coefficients))) coefficients <- rep(NaN, d)
target <- file(arguments[3], "wb")
writeBin(as.double(coefficients), target)
close(target)
