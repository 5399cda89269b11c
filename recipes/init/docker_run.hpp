#pragma once
// RUN of a Dockerfile.
#include "recipes/init/build_commands.hpp"
#include "recipes/init/dockerfile.hpp"

namespace mlenv {

/// `commands` are set up as for all of this stage; its flags, list of words and heredocs are read
/// here.
void convert_run(const DockerInstruction& one, BuildCommands commands, const FindFile& file,
                 Conversion& to);

}  // namespace mlenv
