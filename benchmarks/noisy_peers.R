# Robust regression with an intercept by R on many tables: Rscript noisy_peers.R fit IN OUT SECONDS
#
# IN holds doubles: for each table the numbers of rows and columns, X by columns, and y. OUT gets, for each table and
# each of the four methods in the order below: the processor seconds taken, the scale, and (intercept first) the
# coefficients and their standard errors; NaN where the method failed, took longer than SECONDS, or knows none.
#
# Rscript noisy_peers.R classic FOLDER writes the classic data sets, one CSV file each: the label and then the columns
# of the design without the intercept.

arguments <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages({library(robustbase); library(MASS)})

answer <- function(fit, scale, errors = NA) list(coef = coef(fit), scale = scale, errors = errors)
lmrob_answer <- function(fit) answer(fit, fit$scale, if (is.matrix(fit$cov)) sqrt(diag(fit$cov)) else NA)
methods <- list(
  "lmrob MM" = function(X, y) lmrob_answer(lmrob(y ~ X)),
  KS2014 = function(X, y) lmrob_answer(lmrob(y ~ X, setting = "KS2014")),
  ltsReg = function(X, y) { fit <- ltsReg(X, y, mcd = FALSE); answer(fit, fit$scale) },
  "rlm MM" = function(X, y) {
    fit <- rlm(cbind(1, X), y, method = "MM", maxit = 100)
    answer(fit, fit$s, summary(fit)$coefficients[, 2])
  }
)

fit_all <- function(source, target, limit) {
  source <- file(source, "rb"); target <- file(target, "wb")
  while (length(shape <- readBin(source, "double", 2)) == 2) {
    n <- shape[1]; d <- shape[2]
    X <- matrix(readBin(source, "double", n * d), n, d)
    y <- readBin(source, "double", n)
    for (method in methods) {
      set.seed(1)
      found <- NULL
      start <- proc.time()
      setTimeLimit(elapsed = limit, transient = TRUE)
      try(suppressWarnings(found <- method(X, y)), silent = TRUE)
      setTimeLimit(elapsed = Inf)
      seconds <- sum((proc.time() - start)[1:2])
      padded <- function(values) if (length(values) == d + 1) as.double(values) else rep(NaN, d + 1)
      scale <- if (length(found$scale) == 1) found$scale else NaN
      writeBin(c(seconds, scale, padded(found$coef), padded(found$errors)), target)
    }
  }
  close(source); close(target)
}

if (arguments[1] == "fit") fit_all(arguments[2], arguments[3], as.double(arguments[4]))
