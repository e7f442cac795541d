# Times functions of R packages: one request a line ("name repetitions"), answered by a line of JSON.
# Arguments: a folder with binary.csv (0/1 answers), scale.csv (answers to items of one scale).
folder <- commandArgs(TRUE)[1]
binary <- as.matrix(read.csv(file.path(folder, "binary.csv")))
scale <- read.csv(file.path(folder, "scale.csv"))
tasks <- list(
  eRm = function(...) {
    fit <- suppressWarnings(eRm::RM(binary))
    difficulty <- -fit$betapar
    unname(difficulty - mean(difficulty))
  },
  mirt = function(...) {
    fit <- mirt::mirt(as.data.frame(binary), 1, "2PL", verbose = FALSE)
    unname(mirt::coef(fit, IRTpars = TRUE, simplify = TRUE)$items[, "b"])
  },
  psych = function(draws) {
    found <- suppressWarnings(suppressMessages(
      psych::alpha(scale, n.iter = draws, check.keys = FALSE, warnings = FALSE)))
    c(found$total$raw_alpha)
  }
)
connection <- file("stdin", "r")
while (length(line <- readLines(connection, 1)) > 0) {
  given <- regmatches(line, gregexpr("[A-Za-z]+|[0-9]+", line))[[1]]
  package <- given[2]
  if (!requireNamespace(package, quietly = TRUE)) {
    cat("{\"missing\": true}\n")
  } else {
    took <- system.time(value <- tasks[[package]](as.integer(given[4])))[["elapsed"]]
    cat(sprintf("{\"seconds\": %.6f, \"value\": [%s], \"version\": \"%s\"}\n", took,
      paste(format(value, digits = 15), collapse = ","), packageVersion(package)))
  }
  flush(stdout())
}
