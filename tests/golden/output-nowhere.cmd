# exit: 0
mkdir folder full; touch full/thesis; for output in docker-archive:nodir/a.tar oci:nodir/x oci-archive:folder oci:full oci:full/thesis oci:-; do mlenv save image "$output"; done; mlenv save image docker-archive:- oci-archive:-; ls
