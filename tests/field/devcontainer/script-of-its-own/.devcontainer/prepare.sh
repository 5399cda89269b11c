#!/bin/bash
set -eu
sudo apt-get update
sudo apt-get install -y graphviz
pip install --user -r requirements.txt
echo "ready"
