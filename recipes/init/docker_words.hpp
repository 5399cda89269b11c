#pragma once
// Names and paths of a Dockerfile by which it is known what they are for.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/dockerfile.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// A command without what starts it in an environment of a tool's: `python x` of `uv run python x`,
/// `uvicorn a:b` of
/// `/app/.venv/bin/uvicorn a:b`, `python t.py` of `uv run t.py`.
std::vector<std::string> own_command(std::vector<std::string> words);

/// `/app/.venv`, `/root/.local`, `/usr/local/lib/python3.11/site-packages`, `/wheels`: what a stage
/// of a build installs Python packages into.
bool is_environment_path(std::string_view path);

/// A variable by which package managers are set up, and that nothing else reads:
/// `PIP_NO_CACHE_DIR`, `VIRTUAL_ENV`.
bool is_manager_variable(std::string_view name);

/// A command that brings a tool along which mlenv does without: uv's installer, Miniconda's.
bool brings_tool(std::string_view command);

/// `. venv/bin/activate`, `source activate x`, `conda activate x`.
bool activates_environment(const ShellCommand& command);

/// Why a recipe has no words for an instruction; empty: it has.
std::string_view why_no_key(std::string_view keyword);

/// A RUN with heredocs as a shell's text: `<<EOF` alone is a program with a `#!` of its own.
std::string heredoc_script(const DockerInstruction& one);

}  // namespace mlenv
