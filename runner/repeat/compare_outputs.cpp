#include "runner/repeat/compare_outputs.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

namespace mlenv {
namespace {

using Files = std::map<std::string, const RecordedFile*>;

Files by_path(const RecordedOutput& output) {
  Files files;
  for (const RecordedFile& file : output.files) files.emplace(file.path, &file);
  return files;
}

std::string verdict(const RecordedFile* recorded, const RecordedFile* found) {
  if (found == nullptr) return "missing";
  if (recorded == nullptr) return "new";
  return recorded->digest == found->digest && recorded->kind == found->kind ? "same" : "differs";
}

/// Reads as much as there is, up to a whole buffer.
template <class Buffer>
std::size_t fill_buffer(FdSource& source, Buffer& buffer) {
  std::size_t have = 0;
  while (have < buffer.size()) {
    const std::size_t count = source.read(ByteSpan(buffer).subspan(have));
    if (count == 0) break;
    have += count;
  }
  return have;
}

std::string gpu_names(const Facts& facts) {
  std::string names;
  if (!facts.gpus) return names;
  for (const Gpu& gpu : *facts.gpus) {
    names += (names.empty() ? "" : ", ") + gpu.name.value.value_or("unknown");
  }
  return names;
}

}  // namespace

std::vector<ComparedFile> compare_output(const RecordedOutput& recorded,
                                         const RecordedOutput& found) {
  const Files before = by_path(recorded);
  const Files after = by_path(found);
  Files all = before;
  all.insert(after.begin(), after.end());
  std::vector<ComparedFile> compared;
  for (const auto& entry : all) {
    const std::string& within = entry.first;
    const auto of = [&](const Files& files) {
      const auto at = files.find(within);
      return at == files.end() ? nullptr : at->second;
    };
    const RecordedFile* const old_file = of(before);
    const RecordedFile* const new_file = of(after);
    ComparedFile one;
    one.path = within.empty() ? recorded.path : recorded.path + "/" + within;
    one.within = within;
    one.what = verdict(old_file, new_file);
    if (old_file != nullptr) one.recorded_bytes = old_file->size_bytes;
    if (new_file != nullptr) one.found_bytes = new_file->size_bytes;
    compared.push_back(std::move(one));
  }
  const bool told = std::any_of(compared.begin(), compared.end(),
                                [](const ComparedFile& one) { return one.what != "same"; });
  const bool same = recorded.kind == found.kind && recorded.kind != "unreadable";
  if (compared.empty() || (!same && !told)) {
    compared.push_back({recorded.path, "", same ? "same" : "differs", {}, {}, {}});
  }
  return compared;
}

std::optional<std::uint64_t> first_difference(const fs::path& a, const fs::path& b) {
  constexpr std::size_t kBuffer = std::size_t{1} << 16U;
  try {
    const Fd first = open_file(a);
    const Fd second = open_file(b);
    FdSource left{first.get()};
    FdSource right{second.get()};
    std::vector<ByteSpan::value_type> x(kBuffer);
    std::vector<ByteSpan::value_type> y(kBuffer);
    for (std::uint64_t offset = 0;; offset += kBuffer) {
      const std::size_t n = fill_buffer(left, x);
      const std::size_t m = fill_buffer(right, y);
      const auto end = x.begin() + static_cast<std::ptrdiff_t>(std::min(n, m));
      const auto at = std::mismatch(x.begin(), end, y.begin()).first;
      if (at != end || n != m) return offset + static_cast<std::uint64_t>(at - x.begin());
      if (n < kBuffer) return std::nullopt;
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> host_differences(const Facts& recorded, const Facts& now) {
  std::vector<std::string> differences;
  const auto hold = [&](std::string_view what, const std::string& then, const std::string& here) {
    if (then.empty() || here.empty() || then == here) return;
    differences.push_back(fmt::format("{}: {}, now {}", what, then, here));
  };
  const auto text = [](const Text& fact) { return fact.value.value_or(""); };
  const auto number = [](const Number& fact) {
    return fact ? std::to_string(*fact) : std::string();
  };
  hold("processor", text(recorded.cpu.model), text(now.cpu.model));
  hold("processors", number(recorded.cpu.usable), number(now.cpu.usable));
  hold("kernel", text(recorded.system.kernel), text(now.system.kernel));
  hold("NVIDIA driver", text(recorded.nvidia.kernel_driver), text(now.nvidia.kernel_driver));
  hold("GPUs", gpu_names(recorded), gpu_names(now));
  return differences;
}

}  // namespace mlenv
