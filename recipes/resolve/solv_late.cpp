// What is called of libsolvext, which brings librpm and its kin along.
#include <cstdio>

#include <solv/repo.h>

extern "C" {
#include <solv/repo_deb.h>  // has neither this nor what it needs
}

#include "base/late_library.hpp"

namespace {
mlenv::LateLibrary solv_library{MLENV_LATE_SOLVEXT};
}  // namespace

MLENV_LATE_3(solv_library, repo_add_debpackages)
