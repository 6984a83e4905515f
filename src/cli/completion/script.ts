export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** The script that a shell evaluates. It calls `deputy __complete`, so it never becomes outdated. */
export const completionScript = (shell: Shell): string => SCRIPTS[shell]

const SCRIPTS: Record<Shell, string> = {
  bash: `_deputy() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _deputy deputy
`,
  zsh: `#compdef deputy
_deputy() {
  local line
  local -a found
  for line in "\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (($#found)); then _describe deputy found; else _files; fi
}
if [[ $funcstack[1] == _deputy ]]; then _deputy "$@"; else compdef _deputy deputy; fi
`,
  fish: `function __deputy_complete
  set -l words (commandline -opc)
  $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c deputy -a '(__deputy_complete)'
`,
}
