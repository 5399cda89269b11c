#pragma once
// The objects of marshalled bytecode, read into arrays (Python/marshal.c).
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace mlenv::marshal {

// Type bytes of Python/marshal.c.
inline constexpr char kCode = 'c';
inline constexpr char kSlice = ':';  ///< from Python 3.14 on: start, stop, step
inline constexpr char kTuple = '(';
inline constexpr char kSmallTuple = ')';
inline constexpr char kFrozenSet = '>';
inline constexpr char kSet = '<';
inline constexpr char kReference = 'r';
inline constexpr char kLong = 'l';
inline constexpr char kBytes = 's';
inline constexpr unsigned kRefFlag = 0x80;

/// How a code object is laid out: numbers, then objects, the first line, then objects.
struct CodeLayout {
  std::size_t head_bytes;
  int objects;
  int tail_objects;
};

using NodeId = std::uint32_t;
inline constexpr NodeId kNone = ~NodeId{0};

enum class Sort : unsigned char { atom, text, bytes, tuple, frozen_set, code, slice };

struct Node {
  Sort sort = Sort::atom;
  char type = 0;          ///< of atoms
  bool interned = false;  ///< of text
  bool ascii = false;
  std::string_view payload{};   ///< raw bytes: of atoms behind the type byte, of text and bytes
  std::size_t first_child = 0;  ///< of tuples, frozensets and code: where in Objects::children
  std::size_t child_count = 0;
  std::string_view head{};  ///< of code: the leading numbers
  std::string_view line{};  ///< of code: the first line
};

/// All of one file: in two arrays, as an allocation for each object would cost more than reading
/// it.
struct Objects {
  std::vector<Node> nodes;
  std::vector<NodeId> children;

  std::span<NodeId> children_of(const Node& node) {
    return std::span(children).subspan(node.first_child, node.child_count);
  }
  std::span<const NodeId> children_of(const Node& node) const {
    return std::span(children).subspan(node.first_child, node.child_count);
  }
};

/// nullopt for a minor version (`11` for 3.11) whose code objects are not known.
std::optional<CodeLayout> code_layout(int minor);

/// Puts all of one marshalled object into `objects`, which keeps pointing into `data`; answers
/// which node is the outermost. Throws `bad-bytecode`.
NodeId read_objects(ByteView data, CodeLayout layout, Objects& objects);

}  // namespace mlenv::marshal
