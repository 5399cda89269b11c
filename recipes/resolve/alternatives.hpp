#pragma once
// What a recipe would get if it said something else: so that facts and hints of a conflict are
// true.
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

using WheelAnswer = std::variant<WheelResolution, Conflict>;
using FindWheels = std::function<WheelAnswer(const WheelRequest&)>;

class Alternatives {
 public:
  Alternatives(const WheelRequest& request, const FindWheels& find)
      : request_(request), find_(find) {}

  /// What the recipe gets with another `cuda` (nullopt: without); nullopt when nothing of that
  /// kind.
  std::optional<WheelResolution> with_cuda(const std::optional<std::string>& cuda) const;
  /// What it gets without `libraries`.
  std::optional<WheelResolution> without_libraries() const;

 private:
  std::optional<WheelResolution> of(const Recipe& recipe) const;

  const WheelRequest& request_;
  const FindWheels& find_;
};

/// Whether the wheels are what `cuda: WANTED` asks for.
bool meets_cuda(const std::string& wanted, const WheelResolution& resolution);

/// `torch 2.10.0 for CUDA 12.8`, `wheels without CUDA`
std::string described(const Recipe& recipe, const WheelResolution& resolution);

}  // namespace mlenv
