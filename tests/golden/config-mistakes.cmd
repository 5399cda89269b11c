# exit: 2
XDG_CONFIG_HOME=$PWD mlenv pull registry.example/x
