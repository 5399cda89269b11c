#pragma once
// Commands of a build that no step is needed for, and files that commands name.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// `curl …/setup_18.x | bash`, and the other ways in which Node.js's makers add their archive: the
/// command that names it, and what reads a program from a pipe behind it.
bool brings_node(const ShellCommand& one);
bool reads_program(const ShellCommand& one);
/// `18` of `setup_18.x` and `node_18.x`; empty: it names none.
std::string node_release(std::string_view text);

/// Why no image needs what a command does; empty: one may. `bare` are its program's words.
std::string_view why_needless(const ShellCommand& one, const std::vector<std::string>& bare);

/// Whether it is about NVIDIA's archive of Debian packages: `dpkg -i cuda-keyring_1.1-1_all.deb`.
bool is_of_nvidias_archive(const ShellCommand& one);

/// `wget https://h.example/a-1-py3-none-any.whl && pip install a-1-py3-none-any.whl`: words with
/// the addresses of wheels that were fetched before, for what is installed is there.
std::vector<std::string> with_addresses(std::vector<std::string> words,
                                        const std::vector<std::string>& wheels);

/// The script that `bash setup.sh`, `./setup.sh` starts, by its name in the image; empty: none.
std::string script_named_by(const ShellCommand& one);

}  // namespace mlenv
