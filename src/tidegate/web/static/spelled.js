// Options added to code that the service wrote: into the last brackets of the Python, at the end of the command line.

const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** A text as a shell reads it. */
export const shell = (text) => (SAFE.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

/** A value as Python writes it. JSON's texts, numbers and lists are Python's. */
export const python = (value) => JSON.stringify(value);

/** withOptions(codes, ['"a"', 'method="em"'], ["a", "--method", "em"]) */
export function withOptions(codes, given, words) {
  const code = codes.Python, inside = code.slice(0, -1);
  if (!given.length) return codes;
  const comma = inside.endsWith("(") ? "" : ", ";
  return { Python: `${inside}${comma}${given.join(", ")})`, "Command line": [codes["Command line"], ...words].join(" ") };
}
