#pragma once
// `{lr}` in the arguments of a variation's command.
#include <string>
#include <string_view>
#include <vector>

#include "runner/matrix/words.hpp"

namespace mlenv::matrix {

/// Where a variation sees its own folder; `{output}`.
inline constexpr std::string_view kOutputTarget = "/output";

/// `output`, and `number` of the variation, from 1.
bool is_own_placeholder(std::string_view name);

/// Throws `bad-matrix` (usage) where an argument has a name in braces that is no parameter's but
/// nearly: with what may have been meant.
void check_placeholders(const std::vector<std::string>& argv,
                        const std::vector<std::string>& names);

/// The arguments with `{NAME}` replaced where NAME is a parameter or one of ours; `{{NAME}}` gives
/// `{NAME}`. All other braces stay: programs have their own use for them.
std::vector<std::string> with_values(const std::vector<std::string>& argv,
                                     const std::vector<Value>& values, std::size_t number);

}  // namespace mlenv::matrix
