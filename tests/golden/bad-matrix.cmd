# exit: 125
mlenv run --matrix lr=0.1,,0.01,0.1 image; mlenv run --matrix seed=5..1 image; mlenv run --matrix lr=0.1..0.5 image
mlenv run --matrix @runs.csv image; mlenv run --matrix @absent.csv image; mlenv run --matrix a=1..200 --matrix b=1..200 image
mlenv run --matrix lr=1 --matrix lr=2 image; mlenv run --matrix 1r=1 image; mlenv run --matrix rate=1,2 image -- train '{raet}'
mlenv run --matrix lr=1,2 -e lr=3 image; mlenv run --matrix lr=1,2 -d image; mlenv run --matrix lr=1,2 -t image
mlenv run --matrix lr=1,2 -p 80:80 image; mlenv run --matrix lr=1,2 --restart always image; mlenv run --parallel 2 image
mlenv run --matrix lr=1,2 --parallel 0 image; mlenv --json run --matrix lr image
