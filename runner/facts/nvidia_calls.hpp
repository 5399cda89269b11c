#pragma once
// Functions of NVIDIA's libraries (NVML, the CUDA driver) by their documented C interfaces: looked
// up by name, so that a library that lacks one still answers the rest. 0 is success in both.
#include <array>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "runner/facts/facts.hpp"
#include "runner/facts/library.hpp"

namespace mlenv::nvidia {

using Status = int;    // nvmlReturn_t, CUresult
using Device = void*;  // nvmlDevice_t

// nvmlMemory_t
struct MemoryInfo {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

using GetText = Status(Device, char*, unsigned);
using GetSystemText = Status(char*, unsigned);
using GetNumber = Status(Device, unsigned*);
using GetModes = Status(Device, unsigned*, unsigned*);

class Calls {
 public:
  explicit Calls(const Library& library) : library_(library) {}

  /// Calls `name`; its failure in words, or nothing.
  template <class Function, class... Args>
  std::optional<std::string> failure(const char* name, Args... args) const {
    auto* function = library_.function<Function>(name);
    if (function == nullptr) return fmt::format("this version has no {}", name);
    status_ = function(args...);
    if (status_ == 0) return std::nullopt;
    auto* words = library_.function<const char*(Status)>("nvmlErrorString");
    return fmt::format("{}: {}", name, words != nullptr ? words(status_) : "failed");
  }
  Status status() const { return status_; }

  Text text(const char* name, Device device) const {
    std::array<char, 96> buffer{};
    const auto wrong = failure<GetText>(name, device, buffer.data(), unsigned{buffer.size()});
    if (wrong) return unknown<std::string>(*wrong);
    return known<std::string>(buffer.data(), name);
  }
  Text system_text(const char* name) const {
    std::array<char, 96> buffer{};
    const auto wrong = failure<GetSystemText>(name, buffer.data(), unsigned{buffer.size()});
    if (wrong) return unknown<std::string>(*wrong);
    return known<std::string>(buffer.data(), name);
  }
  Number number(const char* name, Device device) const {
    unsigned value = 0;
    const auto wrong = failure<GetNumber>(name, device, &value);
    return wrong ? unknown<std::uint64_t>(*wrong) : known<std::uint64_t>(value, name);
  }
  /// The current one of a current and a pending mode.
  Truth mode(const char* name, Device device) const {
    unsigned current = 0;
    unsigned pending = 0;
    const auto wrong = failure<GetModes>(name, device, &current, &pending);
    return wrong ? unknown<bool>(*wrong) : known(current != 0, name);
  }

 private:
  const Library& library_;
  mutable Status status_ = 0;
};

}  // namespace mlenv::nvidia
