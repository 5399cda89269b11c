git clone --depth 1 https://git.example/lab/audio.git
