#include "builder/bytecode/marshal.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "builder/bytecode/marshal_objects.hpp"

namespace mlenv {
namespace {

using marshal::kNone;
using marshal::Node;
using marshal::NodeId;
using marshal::Objects;
using marshal::Sort;

bool is_name_character(char c) { return is_alphanumeric(c) || c == '_'; }

bool is_one_character(std::string_view utf8) {
  std::size_t starts = 0;
  for (const char c : utf8) starts += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return starts == 1;
}

/// Shares equal values and fixes what CPython leaves to chance.
class Canon {
 public:
  explicit Canon(Objects& objects)
      : objects_(objects),
        done_(objects.nodes.size(), kNone),
        shared_(objects.nodes.size(), Hash{objects}, Equal{objects}, &memory_) {}

  /// The canonical node for `id`.
  NodeId visit(NodeId id) {
    if (done_[id] != kNone) return done_[id];
    Node& node = objects_.nodes[id];
    if (node.sort == Sort::text && !node.interned) {
      node.interned = is_one_character(node.payload) ||
                      (node.ascii && !node.payload.empty() &&
                       std::all_of(node.payload.begin(), node.payload.end(), is_name_character));
    }
    const std::span<NodeId> children = objects_.children_of(node);
    for (NodeId& child : children) child = visit(child);
    if (node.sort == Sort::frozen_set) {
      std::sort(children.begin(), children.end(),
                [this](NodeId a, NodeId b) { return content(a) < content(b); });
    }
    const NodeId result = node.sort == Sort::code ? id : *shared_.insert(id).first;
    done_[id] = result;
    return result;
  }

 private:
  // Children are canonical when these are asked, so their numbers stand for their values.
  struct Hash {
    const Objects& objects;
    std::size_t operator()(NodeId id) const {
      const Node& node = objects.nodes[id];
      const auto children = objects.children_of(node);
      const std::hash<std::string_view> hash;
      return hash(node.payload) * 31 + hash(as_text(std::as_bytes(children))) * 7 + traits(node);
    }
  };
  struct Equal {
    const Objects& objects;
    bool operator()(NodeId left, NodeId right) const {
      const Node& a = objects.nodes[left];
      const Node& b = objects.nodes[right];
      const auto first = objects.children_of(a);
      const auto second = objects.children_of(b);
      return traits(a) == traits(b) && a.payload == b.payload &&
             std::equal(first.begin(), first.end(), second.begin(), second.end());
    }
  };

  static std::uint32_t traits(const Node& node) {
    return (static_cast<std::uint32_t>(node.sort) << 16U) |
           (static_cast<std::uint32_t>(static_cast<unsigned char>(node.type)) << 8U) |
           (node.interned ? 1U : 0U) | (node.ascii ? 2U : 0U);
  }

  /// Bytes that depend on the value alone, to sort by.
  std::string content(NodeId id) const {
    const Node& node = objects_.nodes[id];
    std::string text;
    text += static_cast<char>(node.sort);
    text += node.type;
    text += static_cast<char>((node.interned ? 1 : 0) + (node.ascii ? 2 : 0));
    text += fmt::format("{}:", node.payload.size());
    text += node.payload;
    for (const NodeId child : objects_.children_of(node)) text += content(child);
    return text;
  }

  Objects& objects_;
  std::vector<NodeId> done_;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_set<NodeId, Hash, Equal> shared_;
};

class Writer {
 public:
  explicit Writer(const Objects& objects)
      : objects_(objects), uses_(objects.nodes.size()), index_(objects.nodes.size(), kNone) {}

  std::string write_all(NodeId root) {
    count(root);
    write(root);
    return std::move(out_);
  }

 private:
  static bool referable(const Node& node) {
    return node.sort != Sort::code && (node.sort != Sort::atom || !node.payload.empty());
  }

  void count(NodeId id) {
    const Node& node = objects_.nodes[id];
    if (referable(node) && ++uses_[id] > 1) return;
    for (const NodeId child : objects_.children_of(node)) count(child);
  }

  void number(std::size_t value) {
    const auto narrow = static_cast<std::uint32_t>(value);
    std::array<char, 4> bytes{};
    std::memcpy(bytes.data(), &narrow, 4);
    out_.append(bytes.data(), bytes.size());
  }

  void write(NodeId id) {
    const Node& node = objects_.nodes[id];
    unsigned flag = 0;
    if (referable(node)) {
      if (index_[id] != kNone) {
        out_ += marshal::kReference;
        return number(index_[id]);
      }
      if (uses_[id] > 1) {
        flag = marshal::kRefFlag;
        index_[id] = next_index_++;
      }
    }
    auto type = [&](char letter) {
      out_ += static_cast<char>(static_cast<unsigned>(letter) | flag);
    };
    switch (node.sort) {
      case Sort::atom:
        type(node.type);
        out_ += node.payload;
        break;
      case Sort::bytes:
        type(marshal::kBytes);
        number(node.payload.size());
        out_ += node.payload;
        break;
      case Sort::text:
        write_text(node, flag);
        break;
      case Sort::tuple:
        if (node.child_count < 256) {
          type(marshal::kSmallTuple);
          out_ += static_cast<char>(node.child_count);
        } else {
          type(marshal::kTuple);
          number(node.child_count);
        }
        write_children(node);
        break;
      case Sort::frozen_set:
        type(marshal::kFrozenSet);
        number(node.child_count);
        write_children(node);
        break;
      case Sort::code:
        write_code(node);
        break;
      case Sort::slice:
        type(marshal::kSlice);
        write_children(node);
        break;
    }
  }

  void write_text(const Node& node, unsigned flag) {
    const bool brief = node.ascii && node.payload.size() < 256;
    char letter = node.interned ? 't' : 'u';
    if (node.ascii) letter = node.interned ? 'A' : 'a';
    if (brief) letter = node.interned ? 'Z' : 'z';
    out_ += static_cast<char>(static_cast<unsigned>(letter) | flag);
    if (brief) {
      out_ += static_cast<char>(node.payload.size());
    } else {
      number(node.payload.size());
    }
    out_ += node.payload;
  }

  void write_code(const Node& node) {
    out_ += marshal::kCode;
    out_ += node.head;
    constexpr std::size_t kBeforeLine = 8;
    const std::span<const NodeId> children = objects_.children_of(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i == kBeforeLine) out_ += node.line;
      write(children[i]);
    }
  }

  void write_children(const Node& node) {
    for (const NodeId child : objects_.children_of(node)) write(child);
  }

  const Objects& objects_;
  std::vector<std::uint32_t> uses_;
  std::vector<std::uint32_t> index_;
  std::uint32_t next_index_ = 0;
  std::string out_;
};

}  // namespace

bool marshal_supported(int python_minor) { return marshal::code_layout(python_minor).has_value(); }

std::string canonical_marshal(ByteView marshalled, int python_minor) {
  const std::optional<marshal::CodeLayout> layout = marshal::code_layout(python_minor);
  if (!layout) {
    throw failure("bad-bytecode", "bytecode of Python 3.{} is not known to this mlenv",
                  python_minor)
        .hint("set `bytecode: false` in the recipe");
  }
  Objects objects;
  const NodeId root = marshal::read_objects(marshalled, *layout, objects);
  const NodeId canonical_root = Canon{objects}.visit(root);
  return Writer{objects}.write_all(canonical_root);
}

}  // namespace mlenv
