#include "cli/image_facts_text.hpp"

#include <map>

#include "base/printable.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

/// Paragraphs of labelled lines.
class Page {
 public:
  void heading(std::string_view title) {
    if (!lines_.empty()) lines_.emplace_back();
    lines_.emplace_back(title);
  }
  void line(std::string_view label, std::string_view text) {
    constexpr std::size_t kWidth = 16;
    lines_.push_back(fmt::format("  {:<{}}  {}", label, kWidth, printable(text)));
  }
  /// A line for each item, the label before the first; `none`, or why it is not known.
  template <class T, class Show>
  void list(std::string_view label, const Fact<std::vector<T>>& items, Show&& show) {
    if (!items) return line(label, fmt::format("unknown ({})", items.source));
    if (items->empty()) return line(label, "none");
    for (const T& item : *items) {
      line(label, show(item));
      label = "";
    }
  }
  template <class T, class Show>
  void fact(std::string_view label, const Fact<T>& value, Show&& show) {
    line(label, value ? show(*value) : fmt::format("unknown ({})", value.source));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

std::string fact_text(const FoundLibrary& library) {
  return fmt::format("{:<12}  {}", library.version, library.path);
}

std::string fact_text(const FrameworkBuild& build) {
  std::string text = build.name + " " + build.version;
  if (build.cuda == "cpu") return text + ", for processors alone";
  return build.cuda.empty() ? text : text + ", for CUDA " + build.cuda;
}

/// One line for all libraries of the same code: frameworks split theirs.
void device_code(Page& page, const Fact<std::vector<DeviceLibrary>>& libraries, bool decides) {
  const char* label = decides ? "main kernels" : "others";
  std::map<std::string, std::vector<std::string>> paths;
  for (const DeviceLibrary& one : libraries.value.value_or(std::vector<DeviceLibrary>{})) {
    if (one.decides == decides) paths[join(one.code, " ")].push_back(one.path);
  }
  for (const auto& [code, files] : paths) {
    page.line(label, code);
    const std::size_t more = files.size() - 1;
    page.line("", files.front() + (more == 0 ? "" : fmt::format(" and {} more", more)));
    label = "";
  }
}

std::string fact_text(const SymbolVersions& versions) {
  if (versions.needed.empty()) return "none is needed";
  return fmt::format(
      "{} by {}; {}", versions.needed, versions.needed_by,
      versions.present.empty() ? "the image has none" : "the image has " + versions.present);
}

std::string files_text(const std::string& first, std::uint64_t files) {
  return files <= 1 ? first : fmt::format("{} and {} more", first, files - 1);
}

void missing(Page& page, const ImageFacts& facts) {
  page.heading("missing");
  Fact<std::vector<MissingLibrary>> own = facts.missing_libraries;
  std::vector<std::string> drivers;
  if (own) {
    for (const MissingLibrary& one : *own) {
      if (one.from_driver) drivers.push_back(one.library);
    }
    std::erase_if(*own.value, [](const MissingLibrary& one) { return one.from_driver; });
  }
  page.list("libraries", own, [](const MissingLibrary& one) {
    const std::string text = fmt::format("{} for {}{}", one.library, one.optional ? "plugin " : "",
                                         files_text(one.needed_by, one.files));
    return one.elsewhere.empty() ? text : text + ", though there is " + one.elsewhere;
  });
  if (!drivers.empty()) page.line("from the driver", join(drivers, " "));
  page.list("versions", facts.missing_versions, [](const MissingVersion& one) {
    return fmt::format("{} of {} for {}", one.version, one.library,
                       files_text(one.needed_by, one.files));
  });
}

void cuda(Page& page, const ImageFacts& facts) {
  page.heading("CUDA");
  const auto library = [](const FoundLibrary& one) { return fact_text(one); };
  page.list("runtime", facts.cuda_runtimes, library);
  page.list("cuDNN", facts.cudnn, library);
  page.list("NCCL", facts.nccl, library);
  page.list("compat libcuda", facts.forward_compatibility, [](const ForwardCompatibility& one) {
    return fmt::format("CUDA {} on drivers {}  {}", one.cuda_version, join(one.drivers, " "),
                       one.path);
  });
  page.heading("device code");
  if (!facts.device_code) page.line("", fmt::format("unknown ({})", facts.device_code.source));
  if (facts.device_code && facts.device_code->empty()) page.line("", "none");
  device_code(page, facts.device_code, true);
  device_code(page, facts.device_code, false);
}

void needs(Page& page, const ImageFacts& facts) {
  page.heading("needs");
  const auto text = [](const std::string& value) { return value; };
  const auto versions = [](const SymbolVersions& value) { return fact_text(value); };
  page.fact("driver", facts.oldest_driver, text);
  page.fact("kernel", facts.least_kernel,
            [](const std::string& kernel) { return kernel.empty() ? "any" : kernel; });
  page.list("processor", facts.cpu, [](const CpuNeed& need) {
    return fmt::format("{} for {}", join(need.flags, " "), need.who);
  });
  page.fact("glibc", facts.glibc, versions);
  page.fact("libstdc++", facts.libstdcxx, versions);
}

}  // namespace

std::vector<std::string> image_facts_text(const ImageFacts& facts) {
  Page page;
  page.heading(fmt::format("{}  {}  {}", facts.name, facts.architecture, facts.digest));
  page.list("frameworks", facts.frameworks,
            [](const FrameworkBuild& one) { return fact_text(one); });
  page.fact("user", facts.user,
            [](const std::string& user) { return user.empty() ? "root" : user; });
  page.fact("packed", facts.packed_bytes, [](std::uint64_t bytes) { return human_bytes(bytes); });
  page.fact("unpacked", facts.unpacked_bytes,
            [](std::uint64_t bytes) { return human_bytes(bytes); });
  for (const mlenv::Variable& one : facts.environment)
    page.line("variable", one.name + "=" + one.value);
  cuda(page, facts);
  needs(page, facts);
  missing(page, facts);
  page.heading("waste");
  page.list("", facts.waste, [](const Waste& one) {
    return fmt::format("{:<10}  {:>8} in {}", one.kind, human_bytes(one.bytes),
                       counted(one.files, "file"));
  });
  return page.take();
}

}  // namespace mlenv::cli
