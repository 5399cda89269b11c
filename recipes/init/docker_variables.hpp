#pragma once
// ENV of a Dockerfile.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/conversion.hpp"
#include "recipes/init/dockerfile.hpp"

namespace mlenv {

inline constexpr std::string_view kUnknownVariable =
    "a variable in it has no value in the Dockerfile";

struct DockerVariable {
  std::string name;
  std::string value;
  bool complete = true;    ///< false: a variable in it has no known value
  std::string mistake{};   ///< why it is none; empty: it is one
  bool continues = false;  ///< it names itself, which had no value: the base image may give one
};

/// `ENV A=b C="d $A"`, or the old form `ENV A b`.
std::vector<DockerVariable> docker_env(const DockerInstruction& one, const DockerVariables& known);

/// What BuildKit gives an argument of that name, for the platform that locks are for; empty:
/// nothing.
std::string_view platform_argument(std::string_view name);

/// Into the recipe: its `env`, or the key that says what it sets up. True where later instructions
/// see its value.
bool convert_variable(const SourcePlace& place, const DockerVariable& variable, Conversion& to);

}  // namespace mlenv
