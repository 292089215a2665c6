# Regression with an intercept by R on many tables: Rscript noisy_peers.R robust|censored IN OUT SECONDS
#
# IN holds doubles: for each table the numbers of rows and columns, X by columns, and y (censored at 0 from below in the
# second case). OUT gets, for each table and method: the processor seconds taken, the scale, and (intercept first) the
# coefficients and their standard errors; NaN where the method failed, took longer than SECONDS, is not installed, or
# knows none. The names of the methods are printed, in order. SECONDS are the processor's.
#
# Rscript noisy_peers.R classic FOLDER writes the classic data sets, one CSV file each: the label, and then the columns
# of the design without the intercept. Sets of packages that are not installed are left out.

arguments <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages({library(robustbase); library(MASS)})

answer <- function(fit, scale, errors = NULL) list(coef = coef(fit), scale = scale, errors = errors)
lmrob_answer <- function(fit) answer(fit, fit$scale, if (is.matrix(fit$cov)) sqrt(diag(fit$cov)))
robust <- list(
  "lmrob MM" = function(X, y) lmrob_answer(lmrob(y ~ X)),
  KS2014 = function(X, y) lmrob_answer(lmrob(y ~ X, setting = "KS2014")),
  ltsReg = function(X, y) { fit <- ltsReg(X, y, mcd = FALSE); answer(fit, fit$scale) },
  "rlm MM" = function(X, y) {
    fit <- rlm(cbind(1, X), y, method = "MM", maxit = 100)
    answer(fit, fit$s, summary(fit)$coefficients[, 2])
  }
)
# AER::tobit is survreg with Gaussian noise; with Student's t of 4 degrees it bears some wrong labels.
tobit <- function(X, y, ...) {
  fit <- survival::survreg(survival::Surv(y, y > 0, type = "left") ~ X, ...)
  answer(fit, fit$scale, sqrt(diag(fit$var))[seq_along(coef(fit))])
}
censored <- list(
  tobit = function(X, y) tobit(X, y, dist = "gaussian"),
  "tobit t4" = function(X, y) tobit(X, y, dist = "t", parms = 4),
  "crq Powell" = function(X, y) {
    censor <- rep(0, length(y))
    fit <- quantreg::crq(quantreg::Curv(y, censor, ctype = "left") ~ X, taus = 0.5, method = "Powell")
    list(coef = fit$coefficients, scale = NULL)
  }
)

# In a process of its own, since compiled loops ignore setTimeLimit and a busy machine is not the method's fault.
limited <- function(limit, method, X, y) {
  job <- parallel::mcparallel({
    set.seed(1)
    found <- list()
    start <- proc.time()
    try(suppressWarnings(found <- method(X, y)), silent = TRUE)
    c(found, seconds = sum((proc.time() - start)[1:2]))
  }, silent = TRUE)
  while (is.null(found <- parallel::mccollect(job, wait = FALSE, timeout = 1)[[1]])) {
    used <- as.double(system2("ps", c("-o", "cputimes=", "-p", job$pid), stdout = TRUE))
    if (length(used) == 1 && used > limit) {
      tools::pskill(job$pid, tools::SIGKILL)
      found <- list(seconds = limit)
      break
    }
  }
  parallel::mccollect(job, wait = TRUE)
  found
}

fit_all <- function(methods, source, target, limit) {
  source <- file(source, "rb"); target <- file(target, "wb")
  while (length(shape <- readBin(source, "double", 2)) == 2) {
    n <- shape[1]; d <- shape[2]
    X <- matrix(readBin(source, "double", n * d), n, d)
    y <- readBin(source, "double", n)
    padded <- function(values, size) if (length(values) == size) as.double(values) else rep(NaN, size)
    for (method in methods) {
      found <- limited(limit, method, X, y)
      writeBin(
        c(padded(found$seconds, 1), padded(found$scale, 1), padded(found$coef, d + 1), padded(found$errors, d + 1)),
        target
      )
    }
  }
  close(source); close(target)
  cat(names(methods), sep = "\n")
}

# The regression of the help page, or of the book the set comes from.
formulas <- list(
  robustbase = list(
    aircraft = Y ~ ., airmay = Y ~ ., alcohol = logSolubility ~ ., Animals2 = log(brain) ~ log(body),
    cloud = CloudPoint ~ ., coleman = Y ~ ., delivery = delTime ~ ., education = Y ~ factor(Region) + X1 + X2 + X3,
    exAM = y ~ x, hbk = Y ~ ., heart = clength ~ ., kootenay = Newgate ~ Libby, lactic = Y ~ X,
    pension = Reserves ~ Income, phosphor = plant ~ inorg + organic, pilot = Y ~ X, pulpfiber = Y1 ~ X1 + X2 + X3 + X4,
    salinity = Y ~ ., starsCYG = log.light ~ log.Te, steamUse = Steam ~ ., telef = Calls ~ Year, toxicity = toxicity ~ .,
    wood = y ~ .
  ),
  MASS = list(
    Boston = medv ~ ., cpus = log(perf) ~ syct + mmin + mmax + cach + chmin + chmax, forbes = log10(pres) ~ bp,
    hills = time ~ dist + climb, whiteside = Gas ~ Insul * Temp
  ),
  datasets = list(stackloss = stack.loss ~ .),
  rrcov = list(fish = Weight ~ Length1 + Length2 + Length3 + Height + Width, rice = Overall_evaluation ~ .),
  lme4 = list(Penicillin = diameter ~ plate + sample)
)

export <- function(folder) {
  for (package in names(formulas)) {
    if (!requireNamespace(package, quietly = TRUE)) next
    for (name in names(formulas[[package]])) {
      place <- new.env()
      data(list = name, package = package, envir = place)
      frame <- model.frame(formulas[[package]][[name]], as.data.frame(place[[name]]), na.action = na.omit)
      X <- model.matrix(formulas[[package]][[name]], frame)[, -1, drop = FALSE]
      write.csv(cbind(label = model.response(frame), X), file.path(folder, paste0(name, ".csv")), row.names = FALSE)
    }
  }
}

if (arguments[1] == "censored") invisible(lapply(c("survival", "quantreg"), requireNamespace, quietly = TRUE))
if (arguments[1] == "classic") export(arguments[2]) else
  fit_all(get(arguments[1]), arguments[2], arguments[3], as.double(arguments[4]))
