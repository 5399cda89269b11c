git config --global safe.directory "*"
conda create -n llava python=3.10 -y
