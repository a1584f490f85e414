"""Colours that remain apart for colour-blind eyes (Okabe and Ito), and a grey."""

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
SKY, AMBER, PINK, YELLOW = "#56B4E9", "#E69F00", "#CC79A7", "#F0E442"
BLACK, GREY = "#000000", "#8C8C8C"
