export const formatSize = (bytes: number): string => {
  const units = ['B', 'KB', 'MB', 'GB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export const formatSeconds = (value: number): string => {
  if (value < 1) return `${Math.round(value * 1000)} ms`
  if (value < 60) return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} s`
  const minutes = Math.floor(value / 60)
  return minutes < 60
    ? `${minutes} min ${Math.floor(value % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export const formatTime = (time: string | number): string => new Date(time).toLocaleString()

export const formatAge = (iso: string, now: number): string => {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000)
  if (seconds < 5) return 'now'
  if (seconds < 60) return `${Math.floor(seconds)} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

export const formatCost = (dollars: number): string => `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
