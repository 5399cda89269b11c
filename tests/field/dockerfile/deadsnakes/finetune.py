import fire
