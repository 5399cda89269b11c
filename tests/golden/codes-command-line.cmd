# exit: 0
# Each failure's code, as programs read it.
tell() { "$@" || echo "exit $?"; }
tell mlenv --json lock --no-such-option
tell mlenv --json buld
tell env SOURCE_DATE_EPOCH=yesterday mlenv --json lock recipe.yaml
tell mlenv --json inspect 'Team/Image'
tell mlenv --json inspect sha256:zz
tell mlenv --json build recipe.yaml --output tar:image.tar
tell mlenv --json run some-image -v nothing:/data -- true
tell mlenv --json add ./six.whl
tell mlenv --json push some-image some-image:v1
tell mlenv --json pull some-image
tell mlenv --json inspect some-image
