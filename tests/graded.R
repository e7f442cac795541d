# Marginal maximum likelihood of graded response and generalised partial credit models, without
# limits and with slopes of either sign: an implementation that shares no line with those it is
# compared with. Respondents with the same answers are merged.
kind <- "KIND"
patterns <- aggregate(list(n = rep(1, nrow(d))), d, sum)
x <- as.matrix(patterns[names(d)])
options_of <- apply(x, 2, max) + 1
nodes <- seq(-6, 6, length.out = 61)
weights <- dnorm(nodes) / sum(dnorm(nodes))

unpack <- function(p) {
  items <- list()
  at <- 1
  for (i in seq_len(ncol(x))) {
    inner <- p[(at + 1):(at + options_of[i] - 1)]
    if (kind == "GRM") inner <- inner[1] - cumsum(c(0, exp(inner[-1])))
    items[[i]] <- list(a = p[at], intercepts = inner)
    at <- at + options_of[i]
  }
  items
}

probabilities <- function(item) {
  steps <- outer(item$a * nodes, item$intercepts, "+")
  if (kind == "GRM") {
    above <- cbind(1, plogis(steps), 0)
    return(above[, -ncol(above)] - above[, -1])
  }
  e <- exp(cbind(0, t(apply(steps, 1, cumsum))))
  e / rowSums(e)
}

log_probabilities <- function(item) log(pmax(probabilities(item), 1e-300))

# Log probabilities of the patterns at every node.
joint <- function(p) {
  logs <- matrix(0, nrow(x), length(nodes))
  items <- unpack(p)
  for (i in seq_along(items)) {
    logs <- logs + t(log_probabilities(items[[i]]))[x[, i] + 1, ]
  }
  logs
}

misfit <- function(p) {
  logs <- joint(p)
  largest <- apply(logs, 1, max)
  -sum(patterns$n * (largest + log(exp(logs - largest) %*% weights)))
}

# By Fisher's identity a parameter moves the likelihood only through the log probabilities of its
# own item, weighted with the posteriors. Their differences are central, so no formula is needed.
slope_of_misfit <- function(p) {
  logs <- joint(p)
  posterior <- sweep(exp(logs - apply(logs, 1, max)), 2, weights, "*")
  posterior <- posterior * (patterns$n / rowSums(posterior))
  item_of <- rep(seq_len(ncol(x)), options_of)
  expected <- lapply(seq_len(ncol(x)), function(i) {
    crossprod(posterior, outer(x[, i], seq_len(options_of[i]) - 1, "=="))
  })
  sapply(seq_along(p), function(j) {
    i <- item_of[j]
    ends <- lapply(c(1e-5, -1e-5), function(step) {
      log_probabilities(unpack(replace(p, j, p[j] + step))[[i]])
    })
    -sum(expected[[i]] * (ends[[1]] - ends[[2]])) / 2e-5
  })
}

start <- unlist(lapply(seq_len(ncol(x)), function(i) {
  if (kind != "GRM") return(c(0.5, seq(1, -1, length.out = options_of[i] - 1)))
  shares <- sapply(1:(options_of[i] - 1), function(k) mean(x[, i] >= k))
  b <- qlogis(pmin(pmax(shares, 0.01), 0.99))
  c(1, b[1], log(pmax(-diff(b), 0.05)))
}))
found <- optim(start, misfit, slope_of_misfit, method = "BFGS", control = list(maxit = 2000, reltol = 1e-12))
options(digits = 12)
cat(-found$value, unlist(lapply(unpack(found$par), function(item) c(item$a, -item$intercepts / item$a))), "\n")
