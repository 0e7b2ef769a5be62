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
    value <- read_number(data, "age")
    fill_missing(value > 67.0, value, NA)
  },
  function(data) {
    value <- read_number(data, "lactate")
    fill_missing(value > 2.0, value, FALSE)
  }
)

# "age missing: " for rows in which a column is missing; empty for others.
name_missing <- function(data) {
  texts <- rep("", nrow(data))
  is_missing <- is.na(read_number(data, "age"))
  texts[is_missing] <- paste0(texts[is_missing], ", ", "age missing")
  ifelse(texts == "", "", paste0(substring(texts, 3), ": "))
}

# For each tree: its splits and its leaves. A split has the number of a rule, the node to go to if
# the rule is true, the node if it is false, and the share of training rows where it was true.
# Nodes from 0 are splits; -1 is the first leaf, -2 the second and so on. Of the leaves: their
# probabilities, classes, and what they are named when they decide.
trees <- list(
  list(
    splits = list(c(1, 1, -1, 0x1.bab596de8ca12p-2), c(2, -3, -2, 0x1.fd3c9860521c0p-2)),
    probability = c(132 / 1705, 40 / 654, 545 / 647),
    prediction = c(0, 0, 1),
    decided_by = c("not met: age > 67", "not met: lactate > 2 (missing: false)", "all rules met")
  )
)

# What follows for each row from a node on: the probability, the number of leaves that it may fall
# in, and its leaf, NA if there are several. Where a value is missing that was never missing at
# fitting, both branches of the split are followed, weighted by their shares of the training rows.
follow <- function(tree, data, node) {
  n_rows <- nrow(data)
  if (node < 0) {
    leaf <- -node
    return(list(
      probability = rep(tree$probability[leaf], n_rows),
      n_leaves = rep(1, n_rows),
      leaf = rep(leaf, n_rows)
    ))
  }

  split <- tree$splits[[node + 1]]
  truth <- rules[[split[1]]](data)
  if_true <- follow(tree, data, split[2])
  if_false <- follow(tree, data, split[3])
  share <- split[4]

  is_true <- truth %in% TRUE
  probability <- ifelse(is_true, if_true$probability, if_false$probability)
  n_leaves <- ifelse(is_true, if_true$n_leaves, if_false$n_leaves)
  leaf <- ifelse(is_true, if_true$leaf, if_false$leaf)

  is_open <- is.na(truth)
  mean <- share * if_true$probability + (1 - share) * if_false$probability
  probability[is_open] <- mean[is_open]
  n_leaves[is_open] <- (if_true$n_leaves + if_false$n_leaves)[is_open]
  leaf[is_open] <- NA
  list(probability = probability, n_leaves = n_leaves, leaf = leaf)
}

follow_tree <- function(tree, data) {
  first_node <- if (length(tree$splits) > 0) 0 else -1
  follow(tree, data, first_node)
}

predict_model <- function(data) {
  tree <- trees[[1]]
  result <- follow_tree(tree, data)
  is_positive <- result$probability > 0.5
  prediction <- ifelse(is_positive, 1, 0)
  decided_by <- paste0(name_missing(data), "mean of ", result$n_leaves, " leaves")

  # Rows in a single leaf have its class and its name.
  has_leaf <- !is.na(result$leaf)
  leaf <- result$leaf[has_leaf]
  prediction[has_leaf] <- tree$prediction[leaf]
  decided_by[has_leaf] <- tree$decided_by[leaf]
  data.frame(
    prediction = prediction,
    probability = result$probability,
    decided_by = decided_by,
    stringsAsFactors = FALSE
  )
}
