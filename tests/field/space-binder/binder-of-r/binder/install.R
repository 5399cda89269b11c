install.packages("ggplot2")
