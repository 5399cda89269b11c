# exit: 1
MLENV_STORE=/dev/null/store mlenv images
