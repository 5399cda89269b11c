# exit: 1
mlenv build --output docker-archive:a.tar nothing.yaml; mlenv build -o oci:x -o oci:y nothing.yaml
