#include <array>

#include <fmt/core.h>

#include "recipes/lock.hpp"
#include "recipes/lock_format.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kCode = "built-invalid";
constexpr int kVersion = 1;
constexpr int kRevision = 1;  // 1: files

std::vector<std::pair<std::string, Digest>> read_layers(const TomlReader& reader,
                                                        const TomlValue& root) {
  std::vector<std::pair<std::string, Digest>> layers;
  const TomlValue& all = reader.member(root, "layers", TomlValue::Kind::list);
  for (const TomlValue& one : all.items) {
    if (one.kind != TomlValue::Kind::table) reader.fail(one, "a layer is a table in one line");
    constexpr std::array<std::string_view, 2> kKeys = {"title", "sha256"};
    reader.only(one, kKeys);
    layers.emplace_back(reader.text(one, "title"), read_digest(reader, one, "sha256"));
  }
  return layers;
}

}  // namespace

std::string render_built(const Built& built) {
  std::string out = "# Written by `mlenv build`: what the lock's bytes make. Worth committing.\n";
  out += fmt::format("version = {}\nrevision = {}\n", kVersion, kRevision);
  out += fmt::format("platform = {}\n", toml_text(built.platform));
  out += fmt::format("layer-format = {}\n", built.layer_format);
  out += fmt::format("lock = \"{}\"\n", built.lock.hex());
  if (built.files) out += fmt::format("files = \"{}\"\n", built.files->hex());
  out += fmt::format("image = \"{}\"\nlayers = [\n", built.image.hex());
  for (const auto& [title, digest] : built.layers) {
    out += fmt::format("  {{ title = {}, sha256 = \"{}\" }},\n", toml_text(title), digest.hex());
  }
  return out + "]\n";
}

Built parse_built(std::string_view text, const fs::path& shown_path) {
  TomlReader reader({.shown_path = shown_path,
                     .text = std::string(text),
                     .code = std::string(kCode),
                     .hint = "restore it, or remove it and run `mlenv build`"});
  const TomlValue root = parse_toml(reader.file());
  read_format(reader, root, kVersion, kRevision);
  constexpr std::array<std::string_view, 8> kKeys = {
      "version", "revision", "platform", "layer-format", "lock", "files", "image", "layers"};
  reader.only(root, kKeys);
  const std::uint64_t layer_format = reader.size(root, "layer-format");
  if (layer_format < 1 || layer_format > 1'000'000) {
    reader.fail(*root.find("layer-format"), "`layer-format` is not a format number");
  }
  return {.platform = read_platform(reader, root),
          .lock = read_digest(reader, root, "lock"),
          .files = root.find("files") == nullptr
                       ? std::nullopt
                       : std::optional{read_digest(reader, root, "files")},
          .layer_format = static_cast<int>(layer_format),
          .image = read_digest(reader, root, "image"),
          .layers = read_layers(reader, root)};
}

}  // namespace mlenv
