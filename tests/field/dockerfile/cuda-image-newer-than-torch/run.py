import midas
