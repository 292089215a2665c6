# Robust regression by R on many tables of one shape: Rscript peers.R IN OUT TRIALS ROWS COLUMNS
#
# IN holds doubles, for each trial X by columns and then y. OUT gets, for each method and trial, the seconds taken and
# then two vectors of coefficients (the method's answer and its first stage where it has one, else the answer again),
# all NaN where the method failed. The methods whose package is missing are left out; the names of the others are
# printed, in order.

arguments <- commandArgs(trailingOnly = TRUE)
trials <- as.integer(arguments[3]); n <- as.integer(arguments[4]); d <- as.integer(arguments[5])

methods <- list()
if (requireNamespace("robustbase", quietly = TRUE)) {
  methods$ltsReg <- function(X, y) {
    fit <- robustbase::ltsReg(X, y, intercept = FALSE, nsamp = 2000, mcd = FALSE)
    c(fit$coefficients, fit$raw.coefficients)
  }
  methods$lmrob <- function(X, y) {
    fit <- robustbase::lmrob(y ~ X + 0)
    c(fit$coefficients, if (is.null(fit$init.S)) fit$coefficients else fit$init.S$coefficients)
  }
}
if (requireNamespace("MASS", quietly = TRUE)) {
  methods$rlm <- function(X, y) rep(MASS::rlm(X, y, method = "MM", maxit = 100)$coefficients, 2)
}

source <- file(arguments[1], "rb")
tables <- lapply(seq_len(trials), function(trial) {
  X <- matrix(readBin(source, "double", n * d), n, d)
  list(X = X, y = readBin(source, "double", n))
})
close(source)

target <- file(arguments[2], "wb")
for (name in names(methods)) {
  for (trial in seq_len(trials)) {
    set.seed(trial)
    table <- tables[[trial]]
    coefficients <- rep(NaN, 2 * d)
    start <- proc.time()[["elapsed"]]
    try(suppressWarnings(coefficients <- methods[[name]](table$X, table$y)), silent = TRUE)
    seconds <- proc.time()[["elapsed"]] - start
    if (length(coefficients) != 2 * d) coefficients <- rep(NaN, 2 * d)
    writeBin(as.double(c(seconds, coefficients)), target)
  }
}
close(target)
cat(names(methods), sep = "\n")
