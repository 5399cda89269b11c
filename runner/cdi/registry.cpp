#include "runner/cdi/registry.hpp"

#include <algorithm>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// `2` before `10`, both before `all`.
bool is_before(const std::string& a, const std::string& b) {
  const bool a_number = is_digit(a.empty() ? '-' : a.front());
  const bool b_number = is_digit(b.empty() ? '-' : b.front());
  if (a_number != b_number) return a_number;
  const auto parts_a = split(a, ':');
  const auto parts_b = split(b, ':');
  if (!a_number) return a < b;
  return std::lexicographical_compare(parts_a.begin(), parts_a.end(), parts_b.begin(),
                                      parts_b.end(), [](std::string_view x, std::string_view y) {
                                        return x.size() != y.size() ? x.size() < y.size() : x < y;
                                      });
}

bool exists_on_host(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::vector<fs::path> cdi_folders() { return {"/etc/cdi", "/var/run/cdi"}; }

CdiRegistry::CdiRegistry(const std::vector<fs::path>& folders) {
  std::size_t rank = 1;
  for (const fs::path& folder : folders) {
    try {
      for (const fs::path& file : list_folder(folder)) add_file(file, rank);
    } catch (const Error& error) {  // the folder cannot be read: nobody knows what is in it
      broken_.push_back({"", error});
    }
    ++rank;
  }
}

void CdiRegistry::add_file(const fs::path& file, std::size_t rank) {
  if (file.extension() != ".json" && file.extension() != ".yaml") return;
  std::string text;
  try {
    text = read_small_file(file, size_limit::kRunRecord);
    sources_.push_back({rank, parse_cdi_spec(text, file.string())});
  } catch (const Error& error) {
    broken_.push_back({std::move(text), error});
  }
}

void CdiRegistry::add(CdiSpec spec) { sources_.push_back({0, std::move(spec)}); }

bool CdiRegistry::has(std::string_view kind) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [&](const Source& one) { return one.spec.kind == kind; });
}

/// A broken file may hold a kind that it names, and one that cannot be read any.
void CdiRegistry::refuse_broken(const std::string& kind) const {
  for (const Broken& one : broken_) {
    if (one.text.empty() || one.text.find(kind) != std::string::npos) throw Error(one.error);
  }
}

std::vector<std::string> CdiRegistry::names(const std::string& kind) const {
  std::vector<std::string> found;
  for (const Source& one : sources_) {
    if (one.spec.kind != kind) continue;
    for (const CdiDevice& device : one.spec.devices) found.push_back(device.name);
  }
  if (found.empty()) refuse_broken(kind);
  std::sort(found.begin(), found.end(), is_before);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Error CdiRegistry::absent(const CdiName& device) const {
  Error error = failure("no-device", "there is no device `{}={}`", device.kind, device.device);
  const std::vector<std::string> there = names(device.kind);
  constexpr std::size_t kMost = 8;
  if (there.empty()) {
    error.because(fmt::format("no CDI specification in {} or {} is of `{}`",
                              cdi_folders().front().string(), cdi_folders().back().string(),
                              device.kind));
  } else {
    error.because(fmt::format("of `{}` there are: {}", device.kind, listed(there, kMost)));
  }
  return error;
}

const CdiSpec& CdiRegistry::holder(const CdiName& device) const {
  const Source* best = nullptr;
  const Source* rival = nullptr;
  for (const Source& one : sources_) {
    if (one.spec.kind != device.kind || one.spec.find(device.device) == nullptr) continue;
    if (best == nullptr || one.rank > best->rank) {
      best = &one;
      rival = nullptr;
    } else if (one.rank == best->rank) {
      rival = &one;
    }
  }
  if (best == nullptr) {
    refuse_broken(device.kind);
    throw absent(device);
  }
  if (rival != nullptr) {
    throw usage_error("bad-cdi", "device `{}={}` is in two CDI specifications", device.kind,
                      device.device)
        .because(fmt::format("`{}` and `{}` both have it", best->spec.shown, rival->spec.shown))
        .hint("remove the older one");
  }
  return best->spec;
}

CdiEdits CdiRegistry::edits(const std::vector<CdiName>& devices) const {
  CdiEdits all;
  std::vector<const CdiSpec*> used;
  for (const CdiName& name : devices) {
    const CdiSpec& spec = holder(name);
    const CdiDevice* const device = spec.find(name.device);
    if (device == nullptr) throw absent(name);
    if (std::find(used.begin(), used.end(), &spec) == used.end()) {
      require_on_host(spec.edits, spec.shown);
      all.append(spec.edits);
      used.push_back(&spec);
    }
    require_on_host(device->edits, spec.shown);
    all.append(device->edits);
  }
  return all;
}

void require_on_host(const CdiEdits& edits, const std::string& shown) {
  const auto require = [&](const std::string& path) {
    if (exists_on_host(path)) return;
    throw failure("stale-cdi", "`{}` names what is not there: `{}`", shown, path)
        .because("it was written for another driver, or for devices that have gone since")
        .hint(
            "write it anew with the tool that made it: for NVIDIA, let root run `nvidia-ctk cdi "
            "generate --output=FILE`");
  };
  for (const CdiNode& node : edits.nodes) {
    // A node that says all of itself can be made without the host's.
    if (!node.major || !node.minor || node.type.empty()) require(node.on_host());
  }
  for (const CdiMount& mount : edits.mounts) {
    if (mount.is_bind()) require(mount.host_path);
  }
  for (const CdiHook& hook : edits.hooks) require(hook.path);
}

}  // namespace mlenv
