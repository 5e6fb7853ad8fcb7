/** Times, bars and short texts: everything that turns a number into cells. Pure. */

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g

/** A foreign text on one line, without control characters. */
export const oneLine = (text: string) => text.replace(CONTROL, ' ').replace(/ +/g, ' ').trim()

/** At most `most` characters; an ellipsis says that there was more. */
export const clipped = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`

/** A text in exactly `width` characters. */
export const fitted = (text: string, width: number) => clipped(text, width).padEnd(width)

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
