/* SPDX-License-Identifier: MIT */
/* Piece: from a layout to strips, and the check of what arrives. */
#include "piece.h"

uint64_t hipio_piece_list(struct hipio_piece *piece, const struct hipio_piece_source *source,
                          uint64_t position, uint64_t bytes, uint64_t strips)
{
    struct hipio_piece_strip *out = hipio_piece_strips(piece);
    struct hipio_cursor cursor;
    struct hipio_strip strip;

    piece->strips = 0;
    piece->bytes = 0;
    hipio_cursor_init(&cursor, source->layout, position);
    while (piece->strips < strips && piece->bytes < bytes) {
        uint64_t got = hipio_cursor_next(&cursor, bytes - piece->bytes, &strip);
        if (got == 0)
            break;
        /* A round is shorter than 2^31 bytes, and all of this lies in it. */
        out[piece->strips++] = (struct hipio_piece_strip){
            (uint32_t)(source->base + strip.offset - source->round_low), (uint32_t)strip.length,
            (uint32_t)strip.count, (uint32_t)strip.stride};
        piece->bytes += got;
    }
    return piece->bytes;
}

static uint64_t strip_bytes_below(const struct hipio_piece_strip *strip, uint64_t offset)
{
    uint64_t bytes = 0, at = strip->offset;

    for (uint32_t k = 0; k < strip->count && at < offset; k++, at += strip->stride)
        bytes += offset - at < strip->length ? offset - at : strip->length;
    return bytes;
}

uint64_t hipio_piece_bytes_below(const struct hipio_piece *piece, uint64_t offset)
{
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < piece->strips; i++)
        bytes += strip_bytes_below(&strip[i], offset);
    return bytes;
}

static bool strip_fits(const struct hipio_piece_strip *strip, uint64_t size)
{
    unsigned __int128 end = strip->offset;

    if (strip->count == 0)
        return false;
    end += (unsigned __int128)(strip->count - 1) * strip->stride + strip->length;
    return end <= size;
}

bool hipio_piece_is_sound(const struct hipio_piece *piece, uint64_t received, uint64_t size,
                          bool data)
{
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);
    uint64_t bytes = 0;

    if (received < sizeof *piece || received - sizeof *piece < piece->strips * sizeof *strip)
        return false;
    for (uint32_t i = 0; i < piece->strips; i++) {
        if (!strip_fits(&strip[i], size))
            return false;
        bytes += (uint64_t)strip[i].length * strip[i].count;
    }
    return bytes == piece->bytes &&
           (!data || received == hipio_piece_list_bytes(piece) + piece->bytes);
}
