# Learned by icscm VERSION from 3,000 samples in 5 environments, at level alpha = 0.05.
#
#     age > 67 and lactate > 2 (missing: false)
#
# predict_model(data) takes a data frame and returns another: of each row the class (prediction), the
# probability of 1, and what decided (decided_by). NA and NaN are missing values.
# Numbers are double: whole numbers beyond 2^53 are rounded.

missing_texts <- c()
missing_numbers <- c()

read_column <- function(data, column) {
  if (is.character(column) && !(column %in% names(data))) stop("there is no column ", column)
  value <- data[[column]]
  if (is.factor(value)) value <- as.character(value)
  if (is.character(value)) {
    value[value %in% missing_texts] <- NA
  }
  value
}

read_number <- function(data, column) {
  value <- as.numeric(read_column(data, column))
  value[value %in% missing_numbers] <- NA
  value
}

read_text <- function(data, column) {
  value <- read_column(data, column)
  ifelse(is.na(value), NA, as.character(value))
}

read_boolean <- function(data, column) as.logical(read_column(data, column))

# The truth for each value: if_missing where it is missing, NA where none was missing at fitting.
fill_missing <- function(truth, value, if_missing) {
  truth[is.na(value)] <- if_missing
  truth
}

# Whether each rule is true of each row.
rules <- list(
  function(data) {
    x <- read_number(data, "age")
    fill_missing(x > 67.0, x, NA)
  },
  function(data) {
    x <- read_number(data, "lactate")
    fill_missing(x > 2.0, x, FALSE)
  }
)

# "age missing: " for rows in which a column is missing; empty for others.
name_missing <- function(data) {
  texts <- rep("", nrow(data))
  lacks <- is.na(read_number(data, "age"))
  texts[lacks] <- paste0(texts[lacks], ", ", "age missing")
  ifelse(texts == "", "", paste0(substring(texts, 3), ": "))
}

# For each tree: its splits and its leaves. A split has the number of a rule, the node to go to if
# the rule is true, the node if it is false, and the share of training samples where it was true.
# Nodes from 0 are splits; -1 is the first leaf, -2 the second and so on.
trees <- list(
  list(
    splits = list(c(1, 1, -1, 0x1.bab596de8ca12p-2), c(2, -3, -2, 0x1.fd3c9860521c0p-2)),
    p = c(132 / 1705, 40 / 654, 545 / 647),
    prediction = c(0, 0, 1),
    decided_by = c("not met: age > 67", "not met: lactate > 2 (missing: false)", "all rules met")
  )
)

# For each row: the probability, the number of leaves it may fall in, and its leaf if there is one.
# Where a value is missing that was never missing at fitting, both branches of the split are followed,
# weighted by their shares.
follow <- function(tree, data, node) {
  if (node < 0) {
    return(lapply(list(p = tree$p[-node], n = 1, leaf = -node), rep, nrow(data)))
  }
  split <- tree$splits[[node + 1]]
  truth <- rules[[split[1]]](data)
  one <- follow(tree, data, split[2])
  other <- follow(tree, data, split[3])
  found <- Map(function(a, b) ifelse(truth %in% TRUE, a, b), one, other)
  both <- is.na(truth)
  found$p[both] <- (split[4] * one$p + (1 - split[4]) * other$p)[both]
  found$n[both] <- (one$n + other$n)[both]
  found$leaf[both] <- NA
  found
}

follow_tree <- function(tree, data) follow(tree, data, if (length(tree$splits)) 0 else -1)

predict_model <- function(data) {
  found <- follow_tree(trees[[1]], data)
  is_positive <- found$p > 0.5
  several <- is.na(found$leaf)
  prediction <- ifelse(is_positive, 1, 0)
  prediction[!several] <- trees[[1]]$prediction[found$leaf[!several]]
  decided_by <- paste0(name_missing(data), "mean of ", found$n, " leaves")
  decided_by[!several] <- trees[[1]]$decided_by[found$leaf[!several]]
  data.frame(prediction, probability = found$p, decided_by, stringsAsFactors = FALSE)
}
