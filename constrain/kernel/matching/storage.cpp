// Writes and reads compiled grammars as bytes.
#include "base/archive.h"
#include "matching/compiled_grammar.h"

namespace constrain {

namespace {

constexpr size_t masks_read_at_once = 256;  // at most a microsecond each; the masks met first are likeliest to be used

}  // namespace

// The grammar's own expressions are nested bytes: only a new generation needs them.
std::string CompiledGrammar::stored() {
  std::string expressions(reinterpret_cast<const char*>(stored_expressions_.data()), stored_expressions_.size());
  if (expressions.empty()) {
    Writer archive;
    archive(grammar_.expressions);
    expressions = archive.take();
  }
  Writer archive;
  uint32_t n_vocab = vocabulary_->size();
  archive(n_vocab, seed_, expressions, grammar_, *automaton_);
  return archive.take();
}

CompiledGrammar::CompiledGrammar(Stored stored, std::shared_ptr<const Vocabulary> vocabulary, size_t limit, std::vector<TokenClasses::Ranges> classes)
    : stored_(std::move(stored)), vocabulary_(with_marks(std::move(vocabulary), classes)), classes_(*vocabulary_, std::move(classes)), limit_(limit),
      expressions_there_(false) {
  Reader archive(stored_.data);
  uint32_t n_vocab = 0;
  archive(n_vocab, seed_);
  archive.require(n_vocab == vocabulary_->size());
  stored_expressions_ = std::as_bytes(archive.array<char>());
  automaton_ = std::make_shared<Automaton>(grammar_, *vocabulary_, Automaton::ToBeRestored{});
  archive(grammar_, *automaton_);
  archive.require_end();
  automaton_->masks().read(masks_read_at_once);
  keep_what_is_in_use();
}

void CompiledGrammar::restore_expressions() {
  if (expressions_there_) return;
  Reader archive(stored_expressions_);
  archive(grammar_.expressions);
  archive.require_end();
  expressions_there_ = true;
}

}  // namespace constrain
