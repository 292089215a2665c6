# Powell's censored median regression by R on many tables of one shape: Rscript relu_peers.R IN OUT TRIALS ROWS COLUMNS
#
# IN and OUT are as in peers.R. "crq" starts where it starts by default, at the median regression on all rows;
# "crq-positive" at that on the rows of a positive label. No label may be negative: Curv refuses the table.

arguments <- commandArgs(trailingOnly = TRUE)
trials <- as.integer(arguments[3]); n <- as.integer(arguments[4]); d <- as.integer(arguments[5])

methods <- list()
if (requireNamespace("quantreg", quietly = TRUE)) {
  suppressPackageStartupMessages(library(quantreg)) # crq looks Curv up by name
  powell <- function(X, y, ...) {
    fit <- crq(Curv(y, rep(0, length(y)), ctype = "left") ~ X - 1, taus = 0.5, method = "Powell", ...)
    rep(fit$coefficients, 2)
  }
  methods[["crq"]] <- function(X, y) powell(X, y)
  methods[["crq-positive"]] <- function(X, y) {
    powell(X, y, start = rq.fit.br(X[y > 0, ], y[y > 0])$coefficients)
  }
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
    table <- tables[[trial]]
    coefficients <- rep(NaN, 2 * d)
    start <- Sys.time()
    try(suppressWarnings(coefficients <- methods[[name]](table$X, table$y)), silent = TRUE)
    seconds <- as.numeric(Sys.time() - start, units = "secs")
    if (length(coefficients) != 2 * d) coefficients <- rep(NaN, 2 * d)
    writeBin(as.double(c(seconds, coefficients)), target)
  }
}
close(target)
cat(names(methods), sep = "\n")
