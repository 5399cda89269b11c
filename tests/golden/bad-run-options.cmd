# exit: 125
mlenv run -v /usr:/proc image; mlenv run -v /usr:/dev/ image; mlenv run -e =x image; mlenv run -t image
