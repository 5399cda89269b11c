# exit: 0
tell() { "$@" || echo "exit $?"; }
record() { # record ID MEMBERS: a run's start
  mkdir -p "$MLENV_STORE/runs/$1"
  printf '{"schema":"mlenv.run-start/1","id":"%s","mlenv":"0.1.0","host":"node7","boot_id":"b","started":"%s",%s}' \
    "$1" "$2" "$3" >"$MLENV_STORE/runs/$1/run.json"
}
image='"image":{"name":"jax-cpu","digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","lock_digest":null},"workdir":null,"runtime":null'
tell mlenv runs
tell mlenv runs show last
record 20260301-120000-0fa4f1 2026-03-01T12:00:00.250Z "$image,\"argv\":[\"python\",\"my train.py\",\"--token\",\"***\"],\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"HF_TOKEN\",\"value\":null}],\"mounts\":[{\"source\":\"/data\",\"target\":\"/mnt\",\"read_only\":true}],\"project\":\"/home/me/x\""
echo '{"schema":"mlenv.run-end/1","ended":"2026-03-01T14:05:07.000Z","seconds":7507.75,"exit_code":137,"signal":9,"failure":null,"usage":{"user_seconds":14000.5,"system_seconds":3.25,"read_bytes":1000000,"written_bytes":0,"largest_process_bytes":{"value":8000000000,"source":"getrusage(2)"}}}' >"$MLENV_STORE/runs/20260301-120000-0fa4f1/end.json"
echo '{"schema":"mlenv.run-code/1","commit":{"value":"0123456789abcdef0123456789abcdef01234567","source":"git"},"branch":{"value":"main","source":"git"},"changed":{"value":["a.py","b.py"],"source":"git"},"changed_digest":{"value":null,"source":"too much"}}' >"$MLENV_STORE/runs/20260301-120000-0fa4f1/code.json"
record 20260302-090000-00000a 2026-03-02T09:00:00.000Z "$image,\"argv\":[],\"env\":[],\"mounts\":[],\"project\":null"
record 20260302-090001-00100b 2026-03-02T09:00:01.000Z "$image,\"argv\":[\"true\"],\"env\":[],\"mounts\":[],\"project\":null"
echo '{"schema":"mlenv.run-end/1","ended":"2026-03-02T09:00:01.100Z","seconds":0.1,"exit_code":125,"signal":null,"failure":{"code":"no-runtime","message":"no OCI runtime is installed"},"usage":{"user_seconds":0,"system_seconds":0,"read_bytes":0,"written_bytes":0,"largest_process_bytes":{"value":null,"source":"x"}}}' >"$MLENV_STORE/runs/20260302-090001-00100b/end.json"
tell mlenv runs
tell mlenv runs show 0fa4f1
tell mlenv runs show 00000a
tell mlenv runs show last
tell mlenv runs --state killed
tell mlenv --json runs show 20260302
tell mlenv --json runs show beef
tell mlenv runs prune
tell mlenv runs prune --older-than never
echo '{' >"$MLENV_STORE/runs/20260301-120000-0fa4f1/run.json"
tell mlenv runs --state killed
tell mlenv --json runs show 0fa4f1
tell mlenv runs rm 0fa4f1 0fa4f1
tell mlenv --json runs prune --keep 1
tell mlenv runs
