// The five models on which laws of whole networks are tested: small, with every kind of cell and memory.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/nn/models.hpp"

#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

struct NamedModel {
    std::string name;
    ModelSpec spec;
    bool marked = false;  ///< to be shown sequences of unequal length
};

inline std::vector<NamedModel> five_models(Index vocabulary = 9, Index classes = 11) {
    using Cell = RecurrentSpec::Cell;
    ModelEnds ends;
    ends.vocabulary = vocabulary;
    ends.outputs = classes;
    const auto cells = [&](RecurrentSpec rnn, double dropout) {
        RecurrentModel m;
        m.ends = ends;
        m.ends.output_dropout = dropout;
        m.embedding = 5;
        m.rnn = std::move(rnn);
        m.rnn.hidden = 7;
        m.rnn.layers = 3;
        m.rnn.dropout = dropout;
        return recurrent_model(m);
    };
    ShaRnn sha;
    sha.ends = ends;
    sha.features = 6;
    sha.layers = 2;
    sha.memory = 5;
    sha.dropout = 0.1;
    sha.attention_dropout = 0.2;
    TransformerXl xl;
    xl.ends = ends;
    xl.features = 6;
    xl.layers = 2;
    xl.heads = 2;
    xl.memory = 4;
    ModelSpec gru = cells({.cell = Cell::gru}, 0.0);
    gru.loss.save = {};
    return {{"lstm", cells({.cell = Cell::lstm}, 0.0)},
            {"gru, unequal lengths, head in blocks", std::move(gru), true},
            {"lstm with layer norm and dropout", cells({.layer_norm = true}, 0.3)},
            {"sha_rnn", sha_rnn(sha)},
            {"transformer_xl", transformer_xl(xl)}};
}

}  // namespace backsweep::test
