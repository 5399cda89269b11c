import nemo
