//go:build tools

// The program that the specification names, built from the same release.
package main

import _ "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook"
