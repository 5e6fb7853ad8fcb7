/** Times, bars and short texts: everything that turns a number into cells. Pure. */

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
// Marks that take no cell, and turn or join what stands beside them: a name could look like another one.
const UNSEEN = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/g

/** A foreign text on one line, without control characters and without marks that nobody sees. */
export const oneLine = (text: string) => text.replace(UNSEEN, '').replace(CONTROL, ' ').replace(/ +/g, ' ').trim()

// Letters that a terminal draws two cells wide (Unicode's East Asian Width: wide and full), and those that take none.
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
const NARROW = /[\u303f\u{1f1e6}-\u{1f1ff}]/u
const MARK = /[\p{Mn}\p{Me}]/u

const cellsOf = (letter: string) => {
  if (letter <= '\u02ff') return 1
  if (MARK.test(letter)) return 0
  return WIDE.test(letter) && !NARROW.test(letter) ? 2 : 1
}

/** How many cells a text takes in a terminal. */
export const cells = (text: string) => [...text].reduce((sum, letter) => sum + cellsOf(letter), 0)

/** At most `most` cells; an ellipsis says that there was more. */
export const clipped = (text: string, most: number) => {
  if (cells(text) <= most) return text
  let kept = ''
  let left = Math.max(0, most - 1)
  for (const letter of text) {
    left -= cellsOf(letter)
    if (left < 0) break
    kept += letter
  }
  return `${kept}…`
}

/** A text in exactly `width` cells. */
export const fitted = (text: string, width: number) => {
  const kept = clipped(text, width)
  return kept + ' '.repeat(Math.max(0, width - cells(kept)))
}

/** `40s`, `12m`, `3h`, `2d`. */
export const span = (seconds: number) => {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 60) return `${whole}s`
  if (whole < 3600) return `${Math.floor(whole / 60)}m`
  if (whole < 86400) return `${Math.floor(whole / 3600)}h`
  return `${Math.floor(whole / 86400)}d`
}

/** Seconds from a time in a document until `now` (Unix seconds); undefined where there is no time. */
export const since = (moment: string | null, now: number) => {
  const at = moment === null ? NaN : Date.parse(moment) / 1000
  return Number.isNaN(at) ? undefined : now - at
}

/** `3m of 8m`, or what is known of it. */
export const elapsed = (startedAt: string | null, expectedSec: number | null, now: number, between = ' of ') => {
  const gone = since(startedAt, now)
  if (gone === undefined) return ''
  return expectedSec === null ? span(gone) : `${span(gone)}${between}${span(expectedSec)}`
}

/** The cells of a bar: what is used, what is free, and where in its time the window stands. */
export const barCells = (usedPct: number, elapsedPct: number | null, width: number) => {
  const full = Math.max(0, Math.min(width, Math.round((usedPct / 100) * width)))
  const cells = '█'.repeat(full) + '░'.repeat(width - full)
  if (elapsedPct === null) return { before: cells, mark: '', after: '' }
  const at = Math.max(0, Math.min(width - 1, Math.floor((elapsedPct / 100) * width)))
  return { before: cells.slice(0, at), mark: '│', after: cells.slice(at + 1) }
}

/** How a use is coloured: nearly gone, ahead of its clock, or fine. */
export const useColor = (usedPct: number, elapsedPct: number | null) => {
  if (usedPct >= 90) return 'error'
  return usedPct > (elapsedPct ?? 100) + 10 ? 'warning' : 'success'
}

/** `+12`, `-3`, or `·` where there is no number. */
export const surplusText = (surplus: number | null) => {
  if (surplus === null) return '·'
  const whole = Math.round(surplus)
  return whole > 0 ? `+${whole}` : `${whole === 0 ? 0 : whole}`
}
