#include "base/record_json.hpp"
#include "images/inspect/image_facts.hpp"

namespace mlenv {
namespace {

constexpr RecordKind kKind = {"mlenv.image-facts/1", "facts of an image",
                              "`mlenv inspect IMAGE --facts --json >FILE` writes them"};

}  // namespace

std::string render_image_facts(const ImageFacts& facts) {
  nlohmann::json root = RecordWriter::written(facts);
  root["schema"] = kKind.schema;
  return canonical(root);
}

ImageFacts read_image_facts(std::string_view text, std::string_view shown) {
  const nlohmann::json root = parse_json(text, shown);
  check_kind(root, shown, kKind);
  ImageFacts facts;
  RecordReader(shown, kKind).read(root, "", facts);
  return facts;
}

}  // namespace mlenv
