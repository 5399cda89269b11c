#pragma once
// What of a shell's script is known before it runs: values of `${X%%.*}` and `$(echo 12.1 | tr -d
// .)`, and how tests end.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/dockerfile.hpp"

namespace mlenv {

/// The files in the image that a pattern means, as `*.txt` and `/app/*/requirements.txt`; by their
/// names there.
using FindPaths = std::function<std::vector<std::string>(std::string_view pattern)>;

/// Whether a file is there when a command runs; nullopt: that is not known.
using IsFile = std::function<std::optional<bool>(const std::string& name)>;

/// What `${…}` stands for with an operator of the shell's; `inner` is what stands in the braces:
/// `#X`, `X%%.*`, `X#v`, `X//./`, `X:-word`. nullopt: it is not known.
std::optional<std::string> shell_parameter(std::string_view inner, const DockerVariables& known);

/// What a command in `$( … )` writes, without line ends behind it: echo, printf, cut, tr, sed,
/// uname, dirname, basename, ls, and pipes of them. nullopt: it is not known.
std::optional<std::string> shell_output(std::string_view command, const DockerVariables& known,
                                        const FindPaths& paths);

/// `text` with each `$( … )` replaced that is known.
std::string with_shell_outputs(std::string_view text, const DockerVariables& known,
                               const FindPaths& paths);

/// How `[ … ]`, `[[ … ]]`, `test …`, `true` or `false` ends; nullopt: it is another command, or is
/// not known.
std::optional<bool> shell_test(std::vector<std::string> words, const IsFile& is_file);

}  // namespace mlenv
