// SPDX-License-Identifier: Apache-2.0
// What every page of a report must be, asked inside of the browser: a list of what it is not.
(() => {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`${root.scrollWidth} px wide, the window has ${root.clientWidth}`);
  if (!document.title || !root.lang) found.push('no title or no language');
  const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`two elements #${id}`);
  for (const link of document.querySelectorAll('a[href]')) {
    const href = link.getAttribute('href');
    if (!href.startsWith('#')) found.push(`a link out of the page: ${href}`);
    else if (!document.getElementById(href.slice(1))) found.push(`a link to nowhere: ${href}`);
  }
  if (document.querySelectorAll('script').length > 1) found.push('a script that is not ours');
  if (document.querySelector('img, iframe, object, embed, link[rel=stylesheet]')) found.push('something to fetch');

  // Words stand out from what is behind them: 4.5 to 1, large ones 3 to 1 (WCAG 2.1, 1.4.3).
  const channels = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = text => {
    const [r, g, b] = channels(text).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] !== 0) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data).join('').trim();
    if (!text || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [one, two] = [light(element instanceof SVGElement ? style.fill : style.color), light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const large = size >= 24 || (bold && size >= 18.66);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
    // A thumb hits what can be pressed.
    if (element.matches('summary, select, input, button') && element.getBoundingClientRect().height < 20)
      found.push(`too low to press: ${text.slice(0, 40)}`);
  }
  return found;
})()
