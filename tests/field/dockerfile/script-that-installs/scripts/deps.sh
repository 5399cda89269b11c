#!/usr/bin/env bash
set -e
apt-get update
apt-get install -y --no-install-recommends libsndfile1
pip install soundfile==0.12.1
mkdir /data
