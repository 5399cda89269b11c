import diffusers
